"""The demonstration: five methods on handwritten digits, a table and a page."""
