"""A leaf-spine network whose flows share links max-min fairly."""
