"""What a configuration can do before it ever ran: presets, snapshot, formula, and the order among them."""
