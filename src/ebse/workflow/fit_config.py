"""Settings of ``ebse fit``: how a file is read, and the parameters of the models."""

from dataclasses import KW_ONLY, dataclass, fields
from typing import Annotated, Any, final

from cyclopts import Group, Parameter

# Panels of `ebse fit --help`, in this order.
_DATA = Parameter(group=Group("Data", sort_key=1))
_LABELS = Parameter(group=Group("Labels and model", sort_key=2))
_ENSEMBLE = Parameter(group=Group("Ensemble (with --model rbse, or without labels)", sort_key=4))
RUN = Group("Run", sort_key=3)
"""For the command, whose own options belong there, too."""
_FLAG = Parameter(negative=())

MODELS = ("spreading", "rbse")
READING = ("label", "unlabeled_label", "id", "drop", "delimiter", "header", "array", "missing")
PROPAGATION = ("class_prior", "n_rounds")
ENSEMBLE = (
    *("n_components", "law", "keep_prob", "sigma", "bias_law", "n_epochs", "batch_size", "learning_rate"),
    *("momentum", "weight_decay", "algorithm", "n_gibbs_steps"),
)


@final
@dataclass(frozen=True)
class FitConfig:
    """How a file is read and which model is fitted to it; names are those of the estimators."""

    data: Annotated[str, _DATA]
    """A table (.csv, .tsv), a NumPy file (.npy, .npz), an idx file, or a folder of images."""
    _: KW_ONLY
    label: Annotated[str | None, _LABELS] = None
    """Column of the class labels. Leave it empty where a row has no label. For a folder of images: "folder",
    if each class has a subfolder."""
    unlabeled_label: Annotated[str | None, _LABELS] = None
    """Label that marks rows without one, such as -1, where it is not simply missing."""
    model: Annotated[str | None, _LABELS] = None
    """spreading: label propagation over clusters of all rows. rbse: an ensemble of restricted Boltzmann
    machines, with a classifier if there are labels. By default spreading where there are labels, at least
    1,000 rows, and most rows have no label; otherwise rbse."""
    class_prior: Annotated[str | None, _LABELS] = None
    """Class frequencies among the unlabeled rows, if you know them: equal, or for example a=0.2,b=0.8.
    For label propagation."""
    n_rounds: Annotated[int, _LABELS] = 5
    """Rounds of pseudo-labeling in label propagation. Use 0 if some classes are much larger than others and
    you do not know their frequencies."""
    id: Annotated[str | None, _DATA] = None
    """Column with a name for each row; it appears in predictions.csv."""
    drop: Annotated[tuple[str, ...], _DATA] = ()
    """Columns to leave out."""
    delimiter: Annotated[str | None, _DATA] = None
    """Character between the columns of a table, or "tab". Default: a comma for .csv, a tab for .tsv."""
    header: Annotated[bool, _DATA] = True
    """Whether the first line of a table holds the column names. With --no-header columns are numbered
    from 0."""
    array: Annotated[str | None, _DATA] = None
    """Name of the array in an .npz file that holds the rows, if it has several."""
    missing: Annotated[bool, _DATA, _FLAG] = False
    """Accept missing entries and impute them."""
    split: Annotated[bool, _DATA, _FLAG] = False
    """Replace each continuous column by three binary ones: is the value above the first, second, third
    quartile? Often helps the ensemble on tables of measurements."""
    n_components: Annotated[int, _ENSEMBLE] = 256
    """Hidden units. More can represent finer structure and take longer."""
    law: Annotated[str, _ENSEMBLE] = "bernoulli"
    """Distribution of the weights: bernoulli (connections present or absent), gaussian, or point (no noise: a
    plain RBM)."""
    keep_prob: Annotated[float | None, _ENSEMBLE] = None
    """Probability that a connection is present at the start of training, in (0, 1); for the bernoulli law."""
    sigma: Annotated[float | None, _ENSEMBLE] = None
    """Standard deviation of the weights at the start of training; for the gaussian law."""
    bias_law: Annotated[str, _ENSEMBLE] = "point"
    """Distribution of the biases."""
    n_epochs: Annotated[int | str, _ENSEMBLE] = "auto"
    """Passes over the rows. auto: as many as make 20,000 updates, between 10 and 1,000."""
    batch_size: Annotated[int, _ENSEMBLE] = 100
    """Rows per update."""
    learning_rate: Annotated[float, _ENSEMBLE] = 0.1
    """Step size of the updates; it falls linearly to 0. Lower it if training diverges."""
    momentum: Annotated[float, _ENSEMBLE] = 0.0
    """Momentum of the updates, in [0, 1)."""
    weight_decay: Annotated[float, _ENSEMBLE] = 0.0
    """Strength of the L2 penalty on the weights."""
    algorithm: Annotated[str, _ENSEMBLE] = "pcd"
    """pcd: persistent contrastive divergence. cd: contrastive divergence. algorithm1: that of the paper."""
    n_gibbs_steps: Annotated[int, _ENSEMBLE] = 1
    """Gibbs sweeps of the chains per update."""
    random_state: Annotated[int, Parameter(group=RUN)] = 0
    """Seed of the random numbers: the same seed and data give the same model."""

    @classmethod
    def from_json(cls, config: dict[str, Any]) -> "FitConfig":
        """Settings as the run folder stores them."""
        known = {field.name: field for field in fields(cls)}
        if not set(config) <= set(known) or "data" not in config:
            raise ValueError("the run must have settings of this version of ebse, got others; fit again")
        plain: dict[str, Any] = {name: tuple(x) if isinstance(x, list) else x for name, x in config.items()}
        found = cls(**plain)
        for name in plain:
            if not _is_like(plain[name], getattr(cls, name, "")):
                raise ValueError(
                    f"{name} must be a setting of `ebse fit`, got {plain[name]!r} in the run folder; "
                    "restore it, or fit again"
                )
        return found

    @property
    def reading(self) -> dict[str, Any]:
        """Options of the reader."""
        return {name: getattr(self, name) for name in READING}

    @property
    def ensemble(self) -> dict[str, Any]:
        """Parameters of :class:`ebse.RBSE`."""
        return {name: getattr(self, name) for name in (*ENSEMBLE, "random_state")}

    def changed(self, names: tuple[str, ...]) -> list[str]:
        """Those of these settings that are not at their default."""
        return [name for name in names if getattr(self, name) != getattr(FitConfig, name)]


def _is_like(value: Any, default: Any) -> bool:
    """Whether a value from a file has the type of a setting with this default."""
    if isinstance(default, bool) or isinstance(value, bool):
        return isinstance(value, bool) and isinstance(default, bool)
    if isinstance(default, tuple):
        return isinstance(value, tuple) and all(isinstance(x, str) for x in value)
    if isinstance(default, (int, float)):
        return isinstance(value, (int, float))
    # Texts, and settings without a default, which are texts or numbers.
    return value is None if default is None and value is None else isinstance(value, (str, int, float))
