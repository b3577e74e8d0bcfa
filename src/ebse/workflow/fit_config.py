"""Settings of ``ebse fit``: how a file is read, and the parameters of the models."""

from dataclasses import KW_ONLY, dataclass, fields
from typing import Annotated, Any, final

from cyclopts import Group, Parameter

from ebse._validation import option
from ebse.io.cells import is_number

# Panels of `ebse fit --help`, in this order.
_DATA = Parameter(group=Group("Data", sort_key=1))
_LABELS = Parameter(group=Group("Labels and model", sort_key=2))
_ENSEMBLE = Parameter(group=Group("Ensemble (with --model rbse, or without labels)", sort_key=4))
RUN = Group("Run", sort_key=3)
"""For the command, whose own options belong there, too."""
_FLAG = Parameter(negative=())

FEW_LABEL, RBSE = MODELS = ("few-label", "rbse")
READING = ("label", "unlabeled_label", "id", "drop", "delimiter", "header", "array", "sheet", "missing")
OF_LABELS = ("class_prior", "column", "hold_back")
"""Settings of the classifier for few labels."""
OF_ENSEMBLE = ("split",)
"""Settings of the ensemble's data; with :data:`ENSEMBLE` all that only the ensemble has."""
ENSEMBLE = (
    *("n_components", "law", "keep_prob", "sigma", "bias_law", "n_epochs", "batch_size", "learning_rate"),
    *("momentum", "weight_decay", "algorithm", "n_gibbs_steps"),
)


@final
@dataclass(frozen=True)
class FitConfig:
    """How a file is read and which model is fitted to it; names are those of the estimators."""

    data: Annotated[str, _DATA]
    """A table (.csv, .tsv, also .gz; .parquet, .feather, .xlsx), a NumPy file (.npy, .npz), an idx file, or a
    folder of images."""
    _: KW_ONLY
    label: Annotated[str | None, _LABELS] = None
    """Column of the class labels; cells of rows without a label are empty. For a folder of images: "folder",
    if each class has a subfolder."""
    unlabeled_label: Annotated[str | None, _LABELS] = None
    """Label that marks rows without one, such as -1, where it is not simply missing."""
    model: Annotated[str | None, _LABELS] = None
    """few-label: a classifier for few labels and any columns, the default with --label. rbse: an ensemble of
    restricted Boltzmann machines, with a classifier if there are labels; numbers only."""
    class_prior: Annotated[str, _LABELS] = "estimate"
    """Class frequencies among the unlabeled rows: estimate, equal, labels (as among the labels), or, if you
    know them, for example a=0.2,b=0.8."""
    hold_back: Annotated[float, _LABELS] = 0.0
    """Fraction of the labels, such as 0.2 and at least 10, that is held back at random to estimate accuracy.
    The final model learns from all labels. Without it accuracy is cross-validated, if every class has 5."""
    column: Annotated[tuple[str, ...], _DATA] = ()
    """Kinds of columns where the automatic choice is wrong, such as zip=category: quantity, category, date,
    text or drop."""
    id: Annotated[str | None, _DATA] = None
    """Column with a name for each row; it appears in predictions.csv."""
    drop: Annotated[tuple[str, ...], _DATA] = ()
    """Columns to leave out."""
    delimiter: Annotated[str | None, _DATA] = None
    """Character between the columns of a table, or "tab". By default it is recognized."""
    header: Annotated[bool, _DATA] = True
    """Whether the first line of a table holds the column names. With --no-header columns are numbered
    from 0."""
    array: Annotated[str | None, _DATA] = None
    """Name of the array in an .npz file that holds the rows, if it has several."""
    sheet: Annotated[str | None, _DATA] = None
    """Name of the sheet of an Excel file. Default: the first."""
    missing: Annotated[bool, _ENSEMBLE, _FLAG] = False
    """Accept missing entries and impute them. The classifier for few labels always does."""
    split: Annotated[bool, _ENSEMBLE, _FLAG] = False
    """Replace each continuous column by three binary ones: is the value above the first, second, third
    quartile? Often helps on tables of measurements."""
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
    def model_used(self) -> str:
        """The model that the settings name, or its default; contradictory settings are refused."""
        of_labels, of_ensemble = self.changed(OF_LABELS), self.changed((*ENSEMBLE, *OF_ENSEMBLE))
        if self.model is not None:
            option("model", self.model, MODELS)
        if self.label is None:
            given = [*self.changed(("unlabeled_label",)), *of_labels]
            given += [f"model {FEW_LABEL}"] * (self.model == FEW_LABEL)
            if given:
                raise ValueError(
                    f"{given[0]} must be given with labels, got none; name their column with --label"
                )
            return RBSE
        model = self.model or (RBSE if of_ensemble else FEW_LABEL)
        if model == RBSE and of_labels:
            why = "--model rbse" if self.model else f"{of_ensemble[0]}, a setting of the ensemble"
            raise ValueError(
                f"{of_labels[0]} must be left out with {why}, got both; it is a setting of the classifier "
                f"for few labels (--model {FEW_LABEL})"
            )
        if model == FEW_LABEL and of_ensemble:
            raise ValueError(
                f"{of_ensemble[0]} must be left out with --model {FEW_LABEL}, got it; it is a setting of the "
                "ensemble (--model rbse)"
            )
        return model

    @property
    def ensemble(self) -> dict[str, Any]:
        """Parameters of :class:`ebse.RBSE`."""
        return {name: getattr(self, name) for name in (*ENSEMBLE, "random_state")}

    @property
    def few_label(self) -> dict[str, Any]:
        """Parameters of :class:`ebse.FewLabelClassifier`."""
        return {
            "columns": columns_from(self.column),
            "class_prior": class_prior_from(self.class_prior),
            "random_state": self.random_state,
        }

    def changed(self, names: tuple[str, ...]) -> list[str]:
        """Those of these settings that are not at their default."""
        return [name for name in names if getattr(self, name) != getattr(FitConfig, name)]


def class_prior_from(text: str) -> Any:
    """``class_prior`` of the estimator from a setting: a word, or for example "a=0.2,b=0.8"."""
    if text in ("estimate", "equal"):
        return text
    if text == "labels":
        return None
    prior: dict[str, float] = {}
    parts: list[str] = []
    for part in text.split(","):
        # Class names may contain commas: a name goes on until a part ends in a number.
        parts.append(part)
        name, _, probability = ",".join(parts).rpartition("=")
        name = name.strip()
        if not name or not is_number(probability):
            continue
        if name in prior:
            raise ValueError(f"class_prior must name a class once, got {name!r} twice; leave one of them out")
        prior[name], parts = float(probability), []
    if parts:
        raise ValueError(
            "class_prior must be estimate, equal, labels, or like a=0.2,b=0.8, got "
            f"{','.join(parts).strip()!r} in {text!r}; give a probability to each class"
        )
    return prior


def columns_from(settings: tuple[str, ...]) -> Any:
    """``columns`` of the estimator from settings such as "zip=category"."""
    if not settings:
        return "auto"
    found: dict[str, str] = {}
    for setting in settings:
        name, _, kind = setting.rpartition("=")
        if not name:
            raise ValueError(
                f"column must be like zip=category, got {setting!r}; give a name and one of quantity, "
                "category, date, text, drop"
            )
        if name in found:
            raise ValueError(f"column must name a column once, got {name!r} twice; leave one out")
        found[name] = kind
    return found


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
