"""Settings of a fit to a user's own data: what is read, and the parameters of the estimator."""

from dataclasses import KW_ONLY, dataclass, fields
from typing import Any, final


@final
@dataclass(frozen=True)
class FitConfig:
    """How a file is read and what is learned from it; names are those of :class:`ebse.RBSE`."""

    data: str
    """A table (.csv, .tsv), NumPy's .npy or .npz, an idx file, or a folder of images."""
    _: KW_ONLY
    label: str | None = None
    """Column of labels; rows where it is empty have none."""
    id: str | None = None
    """Column of a table that rows are called by in predictions."""
    drop: tuple[str, ...] = ()
    """Columns that are left out."""
    delimiter: str | None = None
    """Of a table: a comma (.csv) or a tab (.tsv), unless given."""
    array: str | None = None
    """The array of an npz file that holds the rows."""
    missing: bool = False
    """Whether entries may be missing; the ensemble fills them."""
    split: bool = False
    """Columns of quantities become three questions: above each of their quartiles or not."""
    class_prior: str | None = None
    """Of labels that spread: equal, or shares of the classes among rows without a label, as a=0.2,b=0.8."""
    n_rounds: int = 5
    """Of labels that spread: how often rows without a label speak; 0 where classes differ much in size."""
    n_components: int = 256
    """Hidden units."""
    law: str = "bernoulli"
    """Of the connections: bernoulli, gaussian, or point, the plain RBM."""
    noise: float | None = None
    """Where training starts: presence of connections (Bernoulli) or their standard deviation (Gaussian)."""
    bias_law: str = "point"
    """Of the biases."""
    n_epochs: int | str = "auto"
    """Passes over the rows; auto makes 20,000 updates in 10 to 1,000 passes."""
    batch_size: int = 100
    """Rows of an update."""
    learning_rate: float = 0.1
    """Falls to 0 over the epochs."""
    momentum: float = 0.0
    """Of the updates."""
    weight_decay: float = 0.0
    """Pull of the weights to 0."""
    algorithm: str = "pcd"
    """pcd (persistent chains), cd (chains start at the rows), or algorithm1, the paper's."""
    n_gibbs_steps: int = 1
    """Sweeps of a chain in each update."""
    random_state: int = 0
    """A seed: the same one gives the same model."""

    @classmethod
    def from_json(cls, config: dict[str, Any]) -> "FitConfig":
        """Settings as a run's folder holds them."""
        known = {field.name for field in fields(cls)}
        if not set(config) <= known or "data" not in config:
            raise ValueError("the run must hold settings of this version of ebse, got others; fit again")
        plain: dict[str, Any] = {name: tuple(x) if isinstance(x, list) else x for name, x in config.items()}
        return cls(**plain)

    @property
    def reading(self) -> dict[str, Any]:
        """How the file is read."""
        return {
            name: getattr(self, name) for name in ("label", "id", "drop", "delimiter", "array", "missing")
        }

    @property
    def spreading(self) -> dict[str, Any]:
        """What labels that spread are told."""
        return {"sizes": self.class_prior, "n_rounds": self.n_rounds}

    def differs(self, name: str) -> bool:
        """Whether a setting is another than by default."""
        return bool(getattr(self, name) != getattr(FitConfig, name))

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters of the estimator."""
        names = [field.name for field in fields(self)]
        return {name: getattr(self, name) for name in names[names.index("n_components") :]}
