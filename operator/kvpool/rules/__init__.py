"""Pure protocol rules that operator and node share: epochs, leases, fences."""
