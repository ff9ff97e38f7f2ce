"""Texts of tasks beside translation: questions and answers, responses, inference; as files, and encoded as stores."""
