"""The endpoints: each file has the schemas of its requests, and what answers them."""
