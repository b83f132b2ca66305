"""Functions of arrays. They have no state and know no kernel, atom or estimator."""
