"""Item models and the table view they share."""
