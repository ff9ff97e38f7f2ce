"""Downloads: resumed, checked, recorded."""
