"""What hostile tries are made on, a module each: see `hostile.campaign`."""
