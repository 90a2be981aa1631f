"""Making this machine a host of a SlotServe elsewhere: `bin/join`. No Django until it is one."""
