"""From raw API objects to facts and Snapshots; pure."""
