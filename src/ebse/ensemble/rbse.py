"""``RBSE``: a restricted Boltzmann stochastic ensemble as a scikit-learn transformer."""

from pathlib import Path
from typing import Any, Self, final

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_array, check_is_fitted

from ebse._estimators import as_rows, seed_of
from ebse._validation import count, option
from ebse.ensemble._drawing import Source, drawn, imputed, in_blocks, new_rows, pulls
from ebse.ensemble._fit import learn, n_epochs_for, new_run
from ebse.ensemble._fitted import FittedEnsemble
from ebse.ensemble._inputs import as_tensor, generator_of
from ebse.ensemble._io import converted, load_estimator, require_free, save_estimator
from ebse.ensemble._laws import with_noise
from ebse.ensemble._plots import picture
from ebse.ensemble.draws import Read, map_back
from ebse.preprocessing import UnitScaling
from ebse.sampling import LogLikelihood, log_likelihood
from ebse.training import pseudo_log_likelihood

Array = npt.NDArray[np.floating[Any]]


@final
class RBSE(ClassNamePrefixFeaturesOutMixin, TransformerMixin, FittedEnsemble):  # type: ignore[misc]
    """A restricted Boltzmann machine whose weights are random, with a law that is learned without labels.

    For binary features, probabilities and images. Quantities are squeezed into [0, 1] and count as
    probabilities, which says little about them: split or bin them first (``KBinsDiscretizer``).

    Parameters
    ----------
    n_components
        Hidden units.
    law
        Of the connections: "bernoulli" (each is there or not), "gaussian", "point" (the plain RBM), or
        a class of :mod:`ebse.laws`.
    noise
        Where training starts: the probability that a connection is *present* (Bernoulli, 0.5 by default), or
        its standard deviation (Gaussian, 0.3). The likelihood does not depend on it.
    bias_law
        The same for the biases.
    visible
        "binary": features between 0 and 1 are probabilities of binary units. "real": they are values, and
        ``algorithm``, ``momentum`` and ``weight_decay`` have no say.
    n_epochs
        Passes over the rows; "auto" makes 20,000 updates, in 10 to 1,000 passes.
    batch_size, learning_rate, momentum, weight_decay
        Of stochastic gradient ascent; the rate falls to 0 over the epochs.
    algorithm
        "pcd" (persistent chains), "cd" (chains start at the data: better where data has isolated modes),
        or "algorithm1", the paper's, which draws models and is slow.
    n_gibbs_steps
        Sweeps of a chain in each update.
    scaling
        "auto": features that leave [0, 1] in ``fit`` are scaled by their minimum and maximum (8-bit images
        by 255), later values are clipped, with a warning if they are many. "error": all these are refused.
    random_state
        A seed, for results that repeat; a RandomState or Generator of NumPy's goes on from call to call.
    verbose
        1 shows a progress bar.

    Attributes
    ----------
    components_ : (n_components, n_features)
        Means of the connections, where they are present.
    presence_, scale_ : (n_components, n_features)
        Probability of presence under a Bernoulli law; standard deviation under a Gaussian one.
    effective_components_ : (n_components, n_features)
        Connections with their noise integrated out: the RBM that the ensemble acts as.
    intercept_hidden_, intercept_visible_
        Effective biases.
    history_
        One dict for each epoch.
    feature_low_, feature_width_
        What was subtracted from each feature, and what it was divided by.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X = load_digits().data / 16
    >>> rbse = RBSE(n_components=20, n_epochs=2, random_state=0).fit(X)
    >>> rbse.transform(X).shape, rbse.sample_transform(X[:3], n_draws=10).shape
    ((1797, 20), (3, 10, 20))
    """

    def __init__(
        self,
        n_components: int = 256,
        *,
        law: Any = "bernoulli",
        noise: float | None = None,
        bias_law: Any = "point",
        visible: str = "binary",
        n_epochs: int | str = "auto",
        batch_size: int = 100,
        learning_rate: float = 0.1,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        algorithm: str = "pcd",
        n_gibbs_steps: int = 1,
        scaling: str = "auto",
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.law = law
        self.noise = noise
        self.bias_law = bias_law
        self.visible = visible
        self.n_epochs = n_epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.algorithm = algorithm
        self.n_gibbs_steps = n_gibbs_steps
        self.scaling = scaling
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from the rows of X (N, D); y is not looked at.

        After Ctrl-C the estimator is fitted with what was learned so far; ``partial_fit`` goes on from there.
        """
        v, scaling = self._training_rows(X, reset=True)
        run = new_run(self, v, schedule="linear", generator=generator_of(seed_of(self.random_state)))
        n_epochs = n_epochs_for(self, v.shape[0])
        try:
            learn(run, v, n_epochs, n_components=self.n_components, verbose=self.verbose)
        finally:
            self._keep(run, scaling, [])
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """One more pass over the rows of X, at a constant rate.

        Chains go on where they were, unless the estimator was fitted, loaded or copied in between: then new
        ones leave from the data.
        """
        first = not hasattr(self, "alpha_")
        v, scaling = self._training_rows(X, reset=first)
        run, before = getattr(self, "_run", None), [] if first else self.history_
        if run is None:
            # Another seed for every run, or one would repeat the noise of the last.
            generator = generator_of(seed_of(self.random_state) + len(before))
            start = None if first else self._ensemble()
            run = new_run(self, v, schedule="constant", generator=generator, start=start)
        else:
            before = before[: len(before) - len(run.history)]
        try:
            learn(run, v, 1, n_components=self.n_components, verbose=0)
        finally:
            self._keep(run, scaling, before)
            self._run = run
        return self

    def transform(self, X: Any) -> Array:
        """P(h | v) (N, n_components): the mean representation, every model integrated out."""
        v, dtype = self._rows(X)
        ensemble = self._ensemble().frozen()
        return in_blocks(ensemble.mean_h_given_v, v, ensemble.K).astype(dtype, copy=False)

    def inverse_transform(self, H: Any) -> Array:
        """Features (N, D) for hidden means H (N, n_components): P(v | h) by the average model E[θ]."""
        check_is_fitted(self)
        h = check_array(as_rows(H), dtype=[np.float32, np.float64], input_name="H")
        ensemble = self._ensemble()
        v = in_blocks(lambda h: map_back(ensemble, h), h, ensemble.D)
        return self._scaling.undo(v).astype(h.dtype, copy=False)

    def sample_transform(
        self,
        X: Any,
        n_draws: int = 10,
        *,
        source: Source = "posterior",
        n_sweeps: int = 0,
        read: Read = "input",
        noise: float | None = None,
        random_state: Any = None,
    ) -> Array:
        """P(h | v, θ) for ``n_draws`` models θ of each row: (N, n_draws, n_components).

        Parameters
        ----------
        source
            "posterior": models that the ensemble finds likely for the row. "prior": models from the law
            itself (DropConnect). "mean": no draw, ``transform`` repeated.
        n_sweeps
            0 draws the model at the row itself, as the paper does; with more, the ensemble walks so far
            from the row before the model is drawn, and has more to say.
        read
            "input": the model is read on the row. "state": the ensemble is read where the walk ended.
        noise
            Another noise for this call, with the same distribution of the data: the presence of connections,
            or the standard deviation of a Gaussian law. Small presence is strong noise.
        random_state
            By default that of the estimator. A row has the same draws in whatever company.
        """
        option("source", source, ("posterior", "prior", "mean"))
        option("read", read, ("input", "state"))
        count("n_draws", n_draws)
        count("n_sweeps", n_sweeps, least=0)
        if source != "posterior" and n_sweeps:
            raise ValueError(
                f"n_sweeps must be 0 where source is {source!r}, got {n_sweeps}; only models from the "
                "posterior are met on a walk"
            )
        if noise is not None:
            self._require_binary("another noise")
        v, dtype = self._rows(X)
        draws = drawn(
            with_noise(self._ensemble(), noise),
            v,
            n_draws,
            source=source,
            n_sweeps=n_sweeps,
            read=read,
            seed=self._seed(random_state),
        )
        return draws.astype(dtype, copy=False)

    def score_samples(self, X: Any) -> Array:
        """−F(v) of each row: its log-likelihood but for a constant, log ζ, that all rows share."""
        v, dtype = self._rows(X)
        ensemble = self._ensemble().frozen()
        return in_blocks(lambda v: -ensemble.free_energy(v), v, ensemble.K).astype(dtype, copy=False)

    def score(self, X: Any, y: Any = None) -> float:
        """Mean pseudo-log-likelihood Σ_i log P(v_i | v_−i) of the rows; models can be ranked by it."""
        self._require_binary("score")
        v, _ = self._rows(X)
        ensemble = self._ensemble().frozen()
        return float(in_blocks(lambda v: pseudo_log_likelihood(ensemble, v), v, ensemble.K).mean())

    def log_likelihood(self, X: Any, *, random_state: Any = None, **options: Any) -> LogLikelihood:
        """Mean log P(v) of binary rows, exact or bracketed: see :func:`ebse.sampling.log_likelihood`."""
        v, _ = self._rows(X)
        generator = generator_of(self._seed(random_state))
        return log_likelihood(self._ensemble(), as_tensor(v), generator=generator, **options)

    def sample(self, n_samples: int = 1, *, n_sweeps: int = 200, random_state: Any = None) -> Array:
        """New rows (n_samples, D) on the scale of the features: chains of the ensemble, walked on.

        Units are binary: each value is the low or the high end of its feature's range. Means between are
        ``inverse_transform(transform(rows))``. Chains leave from those of training, or from visible biases
        where there are none (then give them more sweeps).
        """
        check_is_fitted(self)
        count("n_samples", n_samples)
        seed = self._seed(random_state)
        return self.on_scale(
            new_rows(self._ensemble(), self.chains_, n_samples, n_sweeps=n_sweeps, seed=seed)
        )

    def impute(self, X: Any, *, method: str = "mean", n_sweeps: int = 100, random_state: Any = None) -> Array:
        """X with its NaN entries filled from P(missing | the rest of the row).

        ``method`` is "mean", averaged over ``n_sweeps`` of a chain, or "draw", where it ended: one of the two
        ends of the feature's range, which is of use for yes and no, not for quantities. An array, always.
        """
        option("method", method, ("mean", "draw"))
        self._require_binary("impute")
        v, dtype = self._rows(X, missing=True)
        mean, draw = imputed(self._ensemble(), v, n_sweeps=n_sweeps, seed=self._seed(random_state))
        filled = self._scaling.undo(mean if method == "mean" else draw)
        known = check_array(as_rows(X), ensure_all_finite="allow-nan", dtype=[np.float32, np.float64])
        return np.where(np.isnan(known), filled, known).astype(dtype, copy=False)

    def outlier_score(self, X: Any, *, n_draws: int = 10, random_state: Any = None) -> Array:
        """How far the ensemble pulls each row towards what it knows: high for rows unlike the data.

        The mean squared distance between the row and its images, those of ``n_draws`` models. Values beyond
        the range that was learned from are clipped to it first, and do not stand out.
        """
        v, dtype = self._rows(X)
        found = pulls(self._ensemble(), v, n_draws=n_draws, seed=self._seed(random_state))
        return found.astype(dtype, copy=False)

    def on_scale(self, v: Any) -> Array:
        """Visible units in [0, 1], ``chains_`` for one, on the scale of the features."""
        check_is_fitted(self)
        return self._scaling.undo(np.asarray(v))

    def plot_components(self, n_components: int = 100, *, image_shape: Any = None) -> Figure:
        """The first components: images, or a heat map where features have names or are no square."""
        components = self.effective_components_[: count("n_components", n_components)]
        return picture(components, image_shape, getattr(self, "feature_names_in_", None))

    @classmethod
    def from_rbm(
        cls,
        rbm: Any,
        *,
        law: Any = "bernoulli",
        noise: float | None = None,
        preserve: str = "distribution",
        **parameters: Any,
    ) -> Self:
        """An ensemble from a trained RBM: a scikit-learn ``BernoulliRBM``, or (W, b, c) with W (D, K).

        ``preserve="distribution"`` gives W the law and noise that leave P(v, h) as it was.
        ``preserve="weights"`` keeps W itself as the means and adds the noise: with a Bernoulli law of
        presence 0.5 this is DropConnect. ``parameters`` are those of the constructor.
        """
        require_free(parameters)
        ensemble = converted(rbm, law, noise, preserve, parameters.get("bias_law", "point"))
        made = cls(ensemble.K, law=law, noise=noise, **parameters)
        made._fitted(ensemble, UnitScaling.none(ensemble.D), history=[], chains=None)
        made.n_features_in_ = ensemble.D
        return made

    def dropped(self, presence: float = 0.5) -> Self:
        """DropConnect on the RBM that the ensemble acts as: each connection there with this probability.

        Its ``sample_transform(X, source="prior")`` draws the masks whatever the row.
        """
        self._require_binary("dropped")
        W, b, c = self._ensemble().effective()
        made: Self = clone(self).set_params(law="bernoulli", noise=presence)
        laws = converted((W, b, c), "bernoulli", presence, "weights", self.bias_law)
        made._fitted(laws, self._scaling, history=self.history_, chains=self.chains_)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(made, name, getattr(self, name))
        return made

    def save(self, path: str | Path) -> None:
        """Write the fitted ensemble to one safetensors file; nothing in it is ever executed."""
        save_estimator(path, self)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """The estimator of a file written by :meth:`save`."""
        return load_estimator(path, cls)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
