"""Models from and to other formats: the authors' checkpoints, ONNX, plain NumPy files."""
