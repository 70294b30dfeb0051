"""The product of one balanced network at many times, fast: plain arrays, and a hidden basis that fits."""
