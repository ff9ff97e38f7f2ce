"""Texts of tasks beside translation: public files made into rows, and rows into stores without test sentences."""
