"""Models on the user's own data: translations, graded pairs, and queries with their relevant documents."""
