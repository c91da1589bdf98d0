//! How alike models are: embeddings, Gram matrices and similarities.
