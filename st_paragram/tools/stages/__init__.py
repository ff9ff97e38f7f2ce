"""Work in stages: tasks that leave results and markers, and who does them, on one machine or many."""
