"""Tasks other than translation: questions and answers, responses, inference; as files and as stores."""
