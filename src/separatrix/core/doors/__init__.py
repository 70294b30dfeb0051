"""What stands at the door of a room: the kinds it offers by name, and the argument that a failed call is owed to."""
