"""What the user gave us. Only this package knows containers of rows."""
