"""The lasso by coordinate descent."""
