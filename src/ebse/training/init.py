"""Initial ensembles: small effective weights, and biases from the mean of the data."""

from typing import Any

import torch
from torch import Tensor

from ebse._validation import count
from ebse.laws import Law, Point
from ebse.laws.law import small_normal
from ebse.models import RestrictedBoltzmannEnsemble
from ebse.training.data import rows_of


def initial_ensemble(
    v: Any, n_hidden: int, *, generator: torch.Generator, law: type[Law] = Point, **noise: Any
) -> RestrictedBoltzmannEnsemble:
    """Initial ensemble for training: effective W ~ N(0, 0.01²), b = logit of the mean μ of v, c = −μᵀ W.

    Parameters
    ----------
    v : array of shape (N, D)
        Rows of the data, or some of them: a tensor, an array or a csr matrix.
    n_hidden : int
        Hidden units.
    generator : torch.Generator
        Source of random numbers.
    law : type of Law, default=Point
        The family of W.
    **noise
        Arguments of the ``start`` of the law: ``law=Bernoulli, p=0.1``.

    References
    ----------
    G. E. Hinton, "A practical guide to training restricted Boltzmann machines", 2010 (the visible biases).

    Examples
    --------
    >>> from ebse.laws import Bernoulli
    >>> g = torch.Generator().manual_seed(0)
    >>> initial_ensemble(torch.eye(4), 3, law=Bernoulli, p=0.1, generator=g)
    RestrictedBoltzmannEnsemble(D=4, K=3, W=Bernoulli, b=Point, c=Point, visible='binary')
    """
    count("n_hidden", n_hidden)
    if not hasattr(v, "shape") or len(v.shape) != 2 or v.shape[0] == 0:
        got = tuple(v.shape) if hasattr(v, "shape") else type(v).__name__
        raise ValueError(
            f"v must be a tensor, array or csr matrix (N, D) with N >= 1, got {got}; "
            "pass one row per example, of chunks the first"
        )
    if not (isinstance(law, type) and issubclass(law, Law)):
        raise TypeError(f"law must be a law of ebse.laws, got {law!r}; pass the class, law=Bernoulli for one")
    floating = isinstance(v, Tensor) and v.is_floating_point()
    dtype = v.dtype if floating else torch.get_default_dtype()
    rows = rows_of("v", v, v.shape[1], dtype=dtype, batch_size=1)
    every = rows.whole()
    used = rows.sample() if every is None else every
    mu = used.mean(0)
    try:
        W = law.start((v.shape[1], n_hidden), generator=generator, **noise)
    except TypeError as error:
        raise TypeError(
            f"noise must be what {law.__name__}.start takes, got {sorted(noise)}; {error}"
        ) from None
    W = W.with_alpha({name: value.to(dtype) for name, value in W.alpha.items()})
    effective = small_normal((v.shape[1], n_hidden), generator=generator).to(dtype)
    W = W.settled(effective, share=0.0)
    # A unit that is constant in N rows may still differ in the next one.
    certain = 1 / (len(used) + 2)
    b = torch.logit(mu.clamp(certain, 1 - certain))
    return RestrictedBoltzmannEnsemble(W=W, b=Point(b), c=Point(-mu @ W.effective()))
