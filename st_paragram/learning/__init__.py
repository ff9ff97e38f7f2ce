"""What training needs: modules, losses, trainers, model directories as SentenceTransformers."""
