"""What everything that is registered promises."""
