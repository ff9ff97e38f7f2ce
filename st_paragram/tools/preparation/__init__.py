"""From parallel text to a pair store, in stages that can be interrupted, resumed and spread over machines."""
