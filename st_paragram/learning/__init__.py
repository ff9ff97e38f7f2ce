"""What families of models share: modules, saving, cards, trainers."""
