"""From the plan in force and measured keys to the index and shards that routers read."""
