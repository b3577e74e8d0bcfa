"""Convert scikit-learn's BernoulliRBM to an ensemble: the same distribution, from which models are sampled.

    python examples/from_scikit_learn.py

Nothing is trained again. With preserve="distribution" (the default) connections become random, and their
means change so that P(v, h) stays the same. With preserve="weights" the means stay: DropConnect, another
distribution.
"""

import numpy as np
from scipy.special import expit
from sklearn.datasets import load_digits
from sklearn.neural_network import BernoulliRBM

from ebse import RBSE


def main(seed: int = 0) -> None:
    """Train with scikit-learn, convert, compare, sample."""
    X = (load_digits().data > 7).astype(np.float64)  # gray values go up to 16: a pixel is dark or not
    # Twelve hidden units are few enough to sum the likelihood exactly.
    rbm = BernoulliRBM(n_components=12, learning_rate=0.05, n_iter=30, random_state=seed).fit(X)

    # 1. Compare with scikit-learn's own arrays.
    W, b, c = rbm.components_.T, rbm.intercept_visible_, rbm.intercept_hidden_
    free_energy = -X @ b - np.logaddexp(0, X @ W + c).sum(1)
    point = RBSE.from_rbm(rbm, law="point", random_state=seed)
    bernoulli = RBSE.from_rbm(rbm, law="bernoulli", keep_prob=0.5, random_state=seed)
    gaussian = RBSE.from_rbm(rbm, law="gaussian", sigma=0.3, random_state=seed)
    dropped = RBSE.from_rbm(rbm, law="bernoulli", keep_prob=0.5, preserve="weights", random_state=seed)
    ensembles = {
        "law='point'": point,
        "law='bernoulli'": bernoulli,
        "law='gaussian'": gaussian,
        "preserve='weights'": dropped,
    }
    print("largest difference from BernoulliRBM; spread: mean standard deviation over 50 models of a row")
    print(f"{'':<20}{'transform':>12}{'free energy':>14}{'log-likelihood':>17}{'spread':>9}")
    for name, rbse in ensembles.items():
        transform = np.abs(rbse.transform(X) - rbm.transform(X)).max()
        energy = np.abs(-rbse.score_samples(X) - free_energy).max()
        found = rbse.log_likelihood(X)  # exact: forward and reverse are equal
        spread = rbse.sample_transform(X[:100], n_draws=50).std(1).mean()
        print(f"{name:<20}{transform:>12.1e}{energy:>14.1e}{found.forward:>17.4f}{spread:>9.3f}")

    # 2. Posterior samples are exact: their mean over many models is the transform.
    rows = X[:20]
    mean = bernoulli.sample_transform(rows, n_draws=5_000).mean(1)
    print(f"mean of 5,000 models of a row, from transform: {np.abs(mean - rbm.transform(rows)).max():.3f}")

    # 3. DropConnect, also with masks made by NumPy: each weight is kept with probability 0.5.
    same = np.array_equal(dropped.components_, rbm.components_.astype(np.float32))
    mean = dropped.sample_transform(rows, n_draws=5_000, source="prior").mean(1)
    kept = np.random.default_rng(seed).random((5_000, *W.shape)) < 0.5
    by_hand = expit(np.einsum("ni,mij->nmj", rows, W * kept) + c).mean(1)
    print(
        f"weights unchanged: {same}; DropConnect by hand, from its mean: {np.abs(mean - by_hand).max():.3f}"
    )

    # 4. New rows. A converted ensemble has no chains of training to start from, hence the many sweeps.
    new = bernoulli.sample(1_000, n_sweeps=2_000)
    print(f"dark pixels: data {X.mean():.3f}, 1,000 new rows {new.mean():.3f}")


if __name__ == "__main__":
    main()
