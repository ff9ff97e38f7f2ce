"""Texts of tasks other than translation: public files made into rows, and rows into stores without test sentences."""
