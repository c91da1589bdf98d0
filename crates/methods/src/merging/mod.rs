//! HCCT (Sun, Kountouris & Zhang 2024): coalitions by merging while the utility rises.
