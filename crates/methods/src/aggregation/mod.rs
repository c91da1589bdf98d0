//! How the models of one coalition become one: robust means and the weights of the baselines.
