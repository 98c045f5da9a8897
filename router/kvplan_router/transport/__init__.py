"""How a gateway asks: the ext_proc protocol in front of one synchronous decision."""
