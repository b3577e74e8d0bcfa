"""``RBSE``: a restricted Boltzmann stochastic ensemble as a scikit-learn transformer."""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar, final

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_is_fitted, validate_data
from torch import Tensor
from tqdm import tqdm

from ebse import _archive
from ebse._archive import State
from ebse._estimators import as_rows, require_moderate, scale_of, seed_of, unchanged_on_error, warn_of_scale
from ebse._validation import count, option
from ebse.ensemble._fit import MONITORED_ROWS, learn, n_epochs_for, new_run
from ebse.ensemble._inputs import as_tensor, generator_of, is_image
from ebse.ensemble._io import converted, require_free, set_state, state_of
from ebse.ensemble._laws import Alpha, Laws, noise_of
from ebse.ensemble._plots import plot
from ebse.ensemble.draws import (
    Read,
    Source,
    draw_rows,
    impute_rows,
    in_blocks,
    in_double,
    map_back,
    reconstruction_errors,
    sample_rows,
)
from ebse.laws import Bernoulli, Gaussian, Law
from ebse.models import RestrictedBoltzmannEnsemble
from ebse.preprocessing import UnitScaling
from ebse.sampling import LogLikelihood, log_likelihood
from ebse.training import Training, pseudo_log_likelihood
from ebse.training.monitors import DEFAULT_MONITORS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = npt.NDArray[np.floating[Any]]
AnyLaw = TypeVar("AnyLaw", bound=Law)

MANY_CLIPPED = 0.2
"""Fraction of clipped values above which a warning is raised."""


def _has_likelihood(rbse: "RBSE") -> bool:
    if rbse.visible == "real":
        raise AttributeError(
            "visible must be 'binary' for score, got 'real': real values have no normalized density; fit "
            "with visible='binary'"
        )
    return True


@final
class RBSE(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Restricted Boltzmann machine (RBM) with random weights, trained without labels.

    The weights θ = (W, b, c) have a distribution P(θ; α), the law, and α is learned: an ensemble of
    infinitely many RBMs, P(v, h, θ) ∝ P(θ; α) exp(vᵀ W h + bᵀ v + cᵀ h). ``transform`` gives the mean
    representation P(h | v), ``sample_transform`` the representations P(h | v, θ) by models θ sampled for each
    row.

    For binary features, probabilities and images. Other features are scaled to [0, 1] and used as
    probabilities, which models quantities poorly: encode them first (``KBinsDiscretizer``).

    Parameters
    ----------
    n_components : int, default=256
        Hidden units K. More of them fit the data better; time grows in proportion. 50 to 1,000 are usual.
    law : {"bernoulli", "gaussian", "point"} or a class of ebse.laws, default="bernoulli"
        Law of W. "bernoulli": each connection is present or absent (DropConnect with learned probabilities);
        "gaussian": each has a mean and a standard deviation; "point": no noise, an ordinary RBM. The
        likelihood and the mean representation hardly depend on it; the sampled representations do.
    keep_prob : float in (0, 1), default=None
        Bernoulli law: probability that a connection is present when training starts; None is 0.5. Smaller
        values are stronger noise. The likelihood does not depend on it.
    sigma : float >= 0, default=None
        Gaussian law: standard deviation of the connections when training starts; None is 0.3. Larger values
        are stronger noise. The likelihood does not depend on it.
    bias_law : {"point", "bernoulli", "gaussian"} or a class of ebse.laws, default="point"
        Law of the biases b and c. Random biases add little, so that the default has none.
    visible : {"binary", "real"}, default="binary"
        "binary": features in [0, 1] are probabilities of binary units. "real": they are values of continuous
        units in [0, 1], trained by Algorithm 1 and Adam; ``algorithm``, ``momentum`` and ``weight_decay``
        must keep their defaults, and there is no likelihood.
    n_epochs : int or "auto", default="auto"
        Passes over the rows. More fit better, until ``history_`` is flat. "auto" makes 20,000 updates in 10
        to 1,000 passes, because the number of updates matters rather than that of passes.
    batch_size : int, default=100
        Rows of a mini-batch, and number of persistent chains. Larger batches give less noisy and fewer
        updates per epoch; 10 to 500 are usual.
    learning_rate : float, default=0.1
        Step size, which falls to 0 over the epochs. Halve it if training diverges or ``history_`` oscillates;
        0.01 to 0.2 are usual.
    momentum : float in [0, 1), default=0.0
        Of gradient ascent. 0.5 to 0.9 speed up small learning rates; the default needs none.
    weight_decay : float >= 0, default=0.0
        L2 penalty of the effective weights. Up to 1e-3 helps where rows are few.
    algorithm : {"pcd", "cd", "algorithm1"}, default="pcd"
        "pcd": persistent contrastive divergence, the best likelihoods. "cd": contrastive divergence, better
        where data has isolated modes that chains do not cross. "algorithm1": the paper's, which samples θ,
        for comparison; slow.
    n_gibbs_steps : int, default=1
        Gibbs sweeps per update. More give better gradients and take proportionally longer; 1 to 10.
    scaling : {"auto", "error"}, default="auto"
        "auto": features that leave [0, 1] in ``fit`` are scaled by their minimum and maximum, 8-bit images by
        255; later values are clipped to this range, with a warning if they are many. "error": values outside
        [0, 1] raise ValueError.
    random_state : int, RandomState, Generator or None, default=None
        An int makes results reproducible.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Means of the connections, given that they are present.
    keep_prob_ : ndarray of shape (n_components, n_features)
        Bernoulli law: probability that each connection is present.
    sigma_ : ndarray of shape (n_components, n_features)
        Gaussian law: standard deviation of each connection.
    effective_components_ : ndarray of shape (n_components, n_features)
        log E[exp W]: connections with θ integrated out. The ensemble of binary units has the P(v, h) of the
        RBM with these weights.
    intercept_hidden_ : ndarray of shape (n_components,)
        Effective biases c of the hidden units.
    intercept_visible_ : ndarray of shape (n_features,)
        Effective biases b of the visible units.
    history_ : list of dict
        One dict per epoch: what was monitored.
    n_iter_ : int
        Number of epochs.
    chains_ : ndarray of shape (batch_size, n_features) or None
        Visible units of the persistent chains.
    feature_low_, feature_width_ : ndarray of shape (n_features,)
        Scaling: ``v = (x − feature_low_) / feature_width_``.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, where X had string column names.

    References
    ----------
    M. Al-Shedivat, E. Neftci, G. Cauwenberghs. Learning Non-deterministic Representations with Energy-based
    Ensembles. ICLR workshop, 2015.

    G. E. Hinton. Training Products of Experts by Minimizing Contrastive Divergence. Neural Computation, 2002.

    T. Tieleman. Training Restricted Boltzmann Machines using Approximations to the Likelihood Gradient. ICML,
    2008.

    L. Wan, M. Zeiler, S. Zhang, Y. LeCun, R. Fergus. Regularization of Neural Networks using DropConnect.
    ICML, 2013.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X = load_digits().data / 16
    >>> rbse = RBSE(n_components=20, n_epochs=2, random_state=0).fit(X)
    >>> rbse.transform(X).shape, rbse.sample_transform(X[:3], n_draws=10).shape
    ((1797, 20), (3, 10, 20))
    """

    _learned: tuple[Laws, Alpha] | None
    """Laws and arrays; None while they are to be read from the run under way."""
    _run: Training | None
    """The run that ``partial_fit`` continues."""
    _scale: str = ""
    """Scale of the rows of ``fit``: 8-bit, unit interval, or another."""

    def __init__(
        self,
        n_components: int = 256,
        *,
        law: Any = "bernoulli",
        keep_prob: float | None = None,
        sigma: float | None = None,
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
        self.keep_prob = keep_prob
        self.sigma = sigma
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
        """Train on the rows of X; y is ignored.

        After Ctrl-C the estimator is fitted with what it has learned so far, and ``partial_fit`` continues.

        Parameters
        ----------
        X : array-like, sparse matrix, tensor or data frame of shape (n_rows, n_features)
            Rows to learn from. 8-bit images may have shape (n_rows, height, width).
        y : None
            Ignored.
        """
        with unchanged_on_error(self):
            v, scaling = self._training_rows(X, reset=True)
            run = new_run(self, v, schedule="linear", generator=generator_of(seed_of(self.random_state)))
            n_epochs = n_epochs_for(self, v.shape[0])
        try:
            n_connections = v.shape[1] * self.n_components
            learn(run, v, n_epochs, n_connections=n_connections, verbose=self.verbose)
        finally:
            self._keep(run, scaling)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """One more pass over the rows of X, at a constant learning rate.

        Persistent chains continue from call to call. After ``fit``, ``load`` or a copy they start anew at the
        rows of X. The first call decides whether passes are monitored: with 1,000 rows or more ``history_``
        has what ``fit`` monitors, with fewer only epoch and step, because monitoring would take longer than
        training.

        Parameters
        ----------
        X : array-like, sparse matrix, tensor or data frame of shape (n_rows, n_features)
            Rows to learn from.
        y : None
            Ignored.
        """
        first = not self.__sklearn_is_fitted__()
        with unchanged_on_error(self):
            v, scaling = self._training_rows(X, reset=first)
            run = None if first else self._run
            if run is None:
                n_before = 0 if first else self.n_iter_
                run = new_run(
                    self,
                    v,
                    schedule="constant",
                    # Another seed for every run, or one would repeat the noise of the last.
                    generator=generator_of(seed_of(self.random_state) + n_before),
                    start=None if first else self._ensemble(),
                    monitors=DEFAULT_MONITORS if v.shape[0] >= MONITORED_ROWS else (),
                )
        history, n_known = [] if first else self.history_, len(run.history)
        try:
            # A single update is too short for a second thread.
            n_connections = v.shape[1] * self.n_components if v.shape[0] > self.batch_size else 0
            learn(run, v, 1, n_connections=n_connections, verbose=0)
        finally:
            history.extend(run.history[n_known:])
            # Arrays are read from the run on demand: converting them takes longer than a small batch.
            self._learned, self._run = None, run
            self._set_facts(scaling, history, run.chains)
        return self

    def transform(self, X: Any) -> Array:
        """Mean representation P(h | v) of each row, with θ integrated out: (n_rows, n_components)."""
        v, dtype = self._rows(X)
        ensemble = self._ensemble()
        if self.visible == "real":
            # In single precision a sum of products depends on the other rows of a block in its last bit.
            double = in_double(ensemble).frozen()
            mean = in_blocks(lambda v: double.mean_h_given_v(v.double()), v, ensemble.K)
        else:
            mean = in_blocks(ensemble.frozen().mean_h_given_v, v, ensemble.K)
        return mean.astype(dtype, copy=False)

    def inverse_transform(self, H: Any) -> Array:
        """Features (n_rows, n_features) of hidden means H (n_rows, n_components): P(v | h) by E[θ]."""
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
        keep_prob: float | None = None,
        sigma: float | None = None,
        random_state: Any = None,
    ) -> Array:
        """Stochastic representations P(h | v, θ) by ``n_draws`` models θ sampled for each row.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows.
        n_draws : int, default=10
            Models per row. Time and memory grow in proportion.
        source : {"posterior", "prior", "mean"}, default="posterior"
            "posterior": θ ~ P(θ | v). "prior": θ ~ P(θ; α), which does not depend on the row (DropConnect).
            "mean": θ integrated out, ``transform`` repeated.
        n_sweeps : int, default=0
            Gibbs sweeps of a chain that starts at the row, after which θ is sampled (chain-sampled models). 0
            is the paper's posterior sample. More sweeps vary the representations more, and let them forget
            the row; 20 to 50 are useful where chains mix slowly.
        read : {"input", "state"}, default="input"
            "input": P(h | v, θ) of the row. "state": P(h | v_s) of the last state of the chain.
        keep_prob : float in (0, 1), default=None
            Another noise for this call, with the same P(v, h): probability that a connection is present.
            Smaller values are stronger noise. Not for a Gaussian law.
        sigma : float >= 0, default=None
            The same for a Gaussian law: standard deviation of the connections. Other laws without a presence
            take one of both. None for both keeps the learned noise.
        random_state : int, RandomState, Generator or None, default=None
            By default that of the estimator. The draws of a row do not depend on the other rows.

        Returns
        -------
        ndarray of shape (n_rows, n_draws, n_components)
        """
        option("source", source, ("posterior", "prior", "mean"))
        option("read", read, ("input", "state"))
        count("n_draws", n_draws)
        count("n_sweeps", n_sweeps, least=0)
        if source != "posterior" and n_sweeps:
            raise ValueError(
                f"n_sweeps must be 0 where source is {source!r}, got {n_sweeps}; only models of the "
                "posterior are sampled after a chain"
            )
        if keep_prob is not None or sigma is not None:
            self._require_binary("another noise")
        v, dtype = self._rows(X)
        ensemble = self._ensemble()
        noise = noise_of(type(ensemble.W), keep_prob, sigma)
        # The mean representation and the states of chains do not depend on the noise.
        if noise and (source == "prior" or (source == "posterior" and read == "input")):
            ensemble = ensemble.with_noise(**noise)
        draws = draw_rows(
            ensemble,
            v,
            n_draws,
            source=source,
            n_sweeps=n_sweeps,
            read=read,
            seed=self._seed(random_state),
        )
        return draws.astype(dtype, copy=False)

    def score_samples(self, X: Any) -> Array:
        """−F(v) of each row: its log-likelihood up to the constant log ζ that all rows share."""
        v, dtype = self._rows(X)
        ensemble = self._ensemble().frozen()
        return in_blocks(lambda v: -ensemble.free_energy(v), v, ensemble.K).astype(dtype, copy=False)

    @available_if(_has_likelihood)  # type: ignore[untyped-decorator]
    def score(self, X: Any, y: Any = None) -> float:
        """Mean pseudo-log-likelihood Σ_i log P(v_i | v_−i) of the rows, for model selection.

        Only for ``visible="binary"``: real values have no normalized density.
        """
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
        """Generate rows (n_samples, n_features) on the scale of the features, by Gibbs chains.

        Visible units are binary: each value is the low or the high end of its feature's range. Values between
        are ``inverse_transform(transform(rows))``.

        Parameters
        ----------
        n_samples : int, default=1
            Rows to generate.
        n_sweeps : int, default=200
            Gibbs sweeps of each chain. Chains start at those of training; where there are none they start at
            the visible biases and need more sweeps.
        random_state : int, RandomState, Generator or None, default=None
            By default that of the estimator.
        """
        check_is_fitted(self)
        count("n_samples", n_samples)
        seed = self._seed(random_state)
        rows = sample_rows(self._ensemble(), self.chains_, n_samples, n_sweeps=n_sweeps, seed=seed)
        return self.on_scale(rows)

    def impute(self, X: Any, *, method: str = "mean", n_sweeps: int = 100, random_state: Any = None) -> Array:
        """X with its NaN entries filled from P(missing | the rest of the row), as an array.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows with missing entries.
        method : {"mean", "draw"}, default="mean"
            "mean": the average over a Gibbs chain. "draw": its last state, the low or the high end of the
            feature's range, which suits binary features only.
        n_sweeps : int, default=100
            Gibbs sweeps; more reduce the Monte-Carlo error.
        random_state : int, RandomState, Generator or None, default=None
            By default that of the estimator.
        """
        option("method", method, ("mean", "draw"))
        self._require_binary("impute")
        v, dtype = self._rows(X, missing=True)
        mean, draw = impute_rows(self._ensemble(), v, n_sweeps=n_sweeps, seed=self._seed(random_state))
        filled = self._scaling.undo(mean if method == "mean" else draw)
        known = check_array(as_rows(X), ensure_all_finite="allow-nan", dtype=[np.float32, np.float64])
        return np.where(np.isnan(known), filled, known).astype(dtype, copy=False)

    def outlier_score(self, X: Any, *, n_draws: int = 10, random_state: Any = None) -> Array:
        """Reconstruction error of each row, high for rows unlike the training data.

        The mean squared distance between the row and its reconstructions by ``n_draws`` posterior samples.
        Values outside the training range are clipped to it first, and do not raise the score.
        """
        v, dtype = self._rows(X)
        found = reconstruction_errors(self._ensemble(), v, n_draws=n_draws, seed=self._seed(random_state))
        return found.astype(dtype, copy=False)

    def on_scale(self, v: Any) -> Array:
        """Visible units in [0, 1], such as ``chains_``, on the scale of the features."""
        check_is_fitted(self)
        return self._scaling.undo(np.asarray(v))

    def plot_components(self, n_components: int = 100, *, image_shape: Any = None) -> "Figure":
        """Plot the first components: as images, or as a heat map where features have names.

        Parameters
        ----------
        n_components : int, default=100
            Components to plot.
        image_shape : (height, width), default=None
            Of the images; by default a square where the features form one.
        """
        components = self.effective_components_[: count("n_components", n_components)]
        return plot(components, image_shape, getattr(self, "feature_names_in_", None))

    @classmethod
    def from_rbm(
        cls,
        rbm: Any,
        *,
        law: Any = "bernoulli",
        keep_prob: float | None = None,
        sigma: float | None = None,
        preserve: str = "distribution",
        **parameters: Any,
    ) -> Self:
        """An ensemble from a trained RBM.

        Parameters
        ----------
        rbm : BernoulliRBM or (W, b, c)
            A fitted ``sklearn.neural_network.BernoulliRBM``, or arrays W (D, K), b (D,) and c (K,).
        law : {"bernoulli", "gaussian", "point"}, default="bernoulli"
            Law of W.
        keep_prob : float in (0, 1), default=None
            Bernoulli law: probability that a connection is present; None is 0.5.
        sigma : float >= 0, default=None
            Gaussian law: standard deviation of the connections; None is 0.3.
        preserve : {"distribution", "weights"}, default="distribution"
            "distribution" chooses the means so that P(v, h) is that of the RBM. "weights" keeps W as the
            means and adds the noise: with a Bernoulli law this is DropConnect.
        **parameters
            Other parameters of the constructor.
        """
        require_free(parameters)
        ensemble = converted(
            rbm,
            law=law,
            keep_prob=keep_prob,
            sigma=sigma,
            preserve=preserve,
            bias_law=parameters.get("bias_law", "point"),
        )
        made = cls(ensemble.K, law=law, keep_prob=keep_prob, sigma=sigma, **parameters)
        made._set_fitted(ensemble, UnitScaling.none(ensemble.D), history=[], chains=None)
        made.n_features_in_ = ensemble.D
        return made

    def dropped(self, keep_prob: float = 0.5) -> Self:
        """DropConnect on the effective RBM: each connection is kept with probability ``keep_prob``.

        ``sample_transform(X, source="prior")`` of the result samples the masks independently of the row.
        """
        self._require_binary("dropped")
        made: Self = clone(self).set_params(law="bernoulli", keep_prob=keep_prob, sigma=None)
        ensemble = converted(
            tuple(self._ensemble().effective()),
            law="bernoulli",
            keep_prob=keep_prob,
            sigma=None,
            preserve="weights",
            bias_law=self.bias_law,
        )
        made._set_fitted(ensemble, self._scaling, history=list(self.history_), chains=self.chains_)
        for name in ("n_features_in_", "feature_names_in_", "_scale"):
            if hasattr(self, name):
                setattr(made, name, getattr(self, name))
        return made

    def save(self, path: str | Path) -> None:
        """Write the fitted estimator to one safetensors file, atomically; loading it executes no code."""
        check_is_fitted(self)
        _archive.save(path, self)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """The estimator of a file written by :meth:`save`."""
        return _archive.load(path, cls)

    def _state(self) -> State:
        return state_of(self)

    @classmethod
    def _from_state(cls, state: State) -> Self:
        made = cls(**state.facts["parameters"])
        set_state(made, state)
        return made

    @property
    def alpha_(self) -> Alpha:
        """Parameters α of the laws, as arrays by letter (W, b, c) and name."""
        return self._held()[1]

    @property
    def components_(self) -> Array:
        """Means of the connections, given that they are present (n_components, n_features)."""
        laws, alpha = self._held()
        return alpha["W"][laws.templates["W"].names[0]].T

    @property
    def keep_prob_(self) -> Array:
        """Probability that each connection is present (n_components, n_features), Bernoulli law."""
        return _numpy(self._law("keep_prob_", Bernoulli).p).T

    @property
    def sigma_(self) -> Array:
        """Standard deviation of each connection (n_components, n_features), Gaussian law."""
        return _numpy(self._law("sigma_", Gaussian).sigma).T

    @property
    def effective_components_(self) -> Array:
        """Connections with θ integrated out, log E[exp W] (n_components, n_features)."""
        return _numpy(self._ensemble().W.effective()).T

    @property
    def intercept_hidden_(self) -> Array:
        """Effective biases of the hidden units (n_components,)."""
        return _numpy(self._ensemble().c.effective())

    @property
    def intercept_visible_(self) -> Array:
        """Effective biases of the visible units (n_features,)."""
        return _numpy(self._ensemble().b.effective())

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def _law(self, name: str, family: type[AnyLaw]) -> AnyLaw:
        W = self._ensemble().W
        if not isinstance(W, family):
            raise AttributeError(f"{name} belongs to a {family.__name__} law, got {type(W).__name__}")
        return W

    def _held(self) -> tuple[Laws, Alpha]:
        """Laws and arrays of the ensemble."""
        check_is_fitted(self)
        if self._learned is None:
            assert self._run is not None
            self._learned = Laws.of(self._run.ensemble)
        return self._learned

    def _ensemble(self) -> RestrictedBoltzmannEnsemble:
        laws, alpha = self._held()
        return laws.with_alpha(alpha)

    def _seed(self, random_state: Any) -> int:
        return seed_of(self.random_state if random_state is None else random_state)

    def _keep(self, run: Training, scaling: UnitScaling) -> None:
        """Be fitted with what a finished run has learned."""
        self._set_fitted(run.ensemble, scaling, history=list(run.history), chains=run.chains)

    def _set_fitted(
        self,
        ensemble: RestrictedBoltzmannEnsemble,
        scaling: UnitScaling,
        *,
        history: list[Any],
        chains: Tensor | npt.NDArray[np.float32] | None,
    ) -> None:
        """Be fitted with an ensemble."""
        self._learned, self._run = Laws.of(ensemble), None
        self._set_facts(scaling, history, chains)

    def _set_facts(
        self, scaling: UnitScaling, history: list[Any], chains: Tensor | npt.NDArray[np.float32] | None
    ) -> None:
        self._scaling = scaling
        self.feature_low_, self.feature_width_ = scaling
        # A copy, because a run continues its chains in place.
        self.chains_ = None if chains is None else np.array(np.asarray(chains))
        self.history_, self.n_iter_ = history, len(history)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_learned")

    def _training_rows(self, X: Any, *, reset: bool) -> tuple[Any, UnitScaling]:
        """Rows to learn from, in [0, 1], and their scaling."""
        option("scaling", self.scaling, ("auto", "error"))
        rows = self._checked(X, reset=reset)
        if reset:
            self._scale = scale_of(rows)
            scaling = UnitScaling.found_in(rows, image=is_image(rows))
        else:
            warn_of_scale(self._scale, rows)
            scaling = self._scaling
        n_scaled = len(scaling.scaled)
        if n_scaled and self.scaling == "error":
            raise ValueError(
                f"X must lie in [0, 1] with scaling='error', got {n_scaled} features that do not; scale them "
                "yourself, or use scaling='auto'"
            )
        if n_scaled and reset and self.verbose:
            tqdm.write(f"RBSE: {n_scaled} of {rows.shape[1]} features are scaled to [0, 1]")
        v = self._scaled(scaling, rows)
        return (v if hasattr(v, "tocsr") else as_tensor(v)), scaling

    def _rows(self, X: Any, *, missing: bool = False) -> tuple[Any, type[np.floating[Any]]]:
        """Rows in [0, 1], and the floating type of the results."""
        check_is_fitted(self)
        rows = self._checked(X, reset=False, missing=missing)
        warn_of_scale(self._scale, rows)
        dtype = np.float64 if rows.dtype == np.float64 else np.float32
        return self._scaled(self._scaling, rows), dtype

    def _scaled(self, scaling: UnitScaling, rows: Any) -> Any:
        """Rows in [0, 1]; a warning, or an error, where many values are outside the training range."""
        clipped = scaling.clipped(rows)
        if clipped and self.scaling == "error":
            raise ValueError(
                f"X must lie in [0, 1] with scaling='error', got {clipped:.0%} of values that do not; scale "
                "them yourself, or use scaling='auto'"
            )
        # 8-bit rows have a warning of their own.
        if clipped > MANY_CLIPPED and not (self._scale == "unit" and scale_of(rows) == "8-bit"):
            warnings.warn(
                f"{clipped:.0%} of the values of X are outside the range of the training data and are "
                "clipped to it; are they on the same scale?",
                stacklevel=4,
            )
        return scaling.apply(rows)

    def _checked(self, X: Any, *, reset: bool, missing: bool = False) -> Any:
        try:
            rows = validate_data(
                self,
                as_rows(X),
                reset=reset,
                accept_sparse=not missing and "csr",
                # Other integers become the first of these; 8-bit ones keep their type, that of images.
                dtype=[np.float64, np.float32, np.uint8],
                ensure_all_finite="allow-nan" if missing else True,
            )
        except ValueError as error:
            if not str(error).startswith("Input X contains NaN"):
                raise
            raise ValueError(
                "Input X contains NaN; fill missing entries first, for example with SimpleImputer, fit, and "
                "let RBSE.impute fill them from the rest of their rows"
            ) from None
        require_moderate(np.nan_to_num(rows) if missing else rows)
        return rows

    def _require_binary(self, name: str) -> None:
        if self._held()[0].visible != "binary":
            raise ValueError(
                f"visible must be 'binary' for {name}, got 'real': real values have no normalized density; "
                "fit with visible='binary'"
            )

    def __getstate__(self) -> dict[str, Any]:
        # A run cannot be pickled (it holds generators of threads): partial_fit of the copy starts new chains.
        if self.__sklearn_is_fitted__():
            self._held()
        state: dict[str, Any] = super().__getstate__()
        return {name: None if name == "_run" else value for name, value in state.items()}

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _numpy(x: Tensor) -> Array:
    found: Array = x.detach().numpy()
    return found
