//! FedCG (Caldarola et al. 2021): domains that share by their distance.
