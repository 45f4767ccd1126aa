"""Which columns hold what: found by name, never by value; what is ambiguous is asked."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from certcal import InputError
from certcal.data import TableColumn, resolve_columns


@pytest.mark.parametrize(
    ("columns", "description"),
    [
        (["confidence", "correct"], "confidence 'confidence', correct 'correct'"),
        (["id", "Conf", "Is Correct"], "confidence 'Conf', correct 'Is Correct'"),
        (["score", "y"], "score 'score', outcome 'y'"),
        (["p", "outcome"], "score 'p', outcome 'outcome'"),
        (["prob", "target"], "score 'prob', outcome 'target'"),
        (["probability", "label"], "score 'probability', outcome 'label'"),
        (["conf", "label"], "score 'conf', outcome 'label'"),
        (["conf", "score", "outcome", "label"], "score 'score', outcome 'outcome'"),
        (["score", "pred", "outcome"], "score 'score', outcome 'outcome'"),
        (["score", "correct"], "confidence 'score', correct 'correct'"),
        (["score", "correct", "outcome"], "confidence 'score', correct 'correct'"),
        (["confidence", "score", "correct"], "confidence 'confidence', correct 'correct'"),
        (["conf", "correct", "label"], "confidence 'conf', correct 'correct'"),
        (["conf", "pred", "label"], "confidence 'conf', correct where 'pred' equals 'label'"),
        (["conf", "correct", "sample_weight"], "confidence 'conf', correct 'correct', weight 'sample_weight'"),
        (["conf", "correct", "weight"], "confidence 'conf', correct 'correct'"),
        (["prob_0", "prob_1", "label"], "probabilities 'prob_0' … 'prob_1', label 'label'"),
        (["p0", "p1", "p2", "y"], "probabilities 'p0' … 'p2', label 'y'"),
        (["p[0]", "p[1]", "y"], "probabilities 'p[0]' … 'p[1]', label 'y'"),
        (
            ["probability_cat", "probability_dog", "label"],
            "probabilities 'probability_cat' … 'probability_dog', label 'label'",
        ),
        (["prob_1", "prob_2", "label"], "probabilities 'prob_1' … 'prob_2', label 'label'"),
        (["logit_0", "logit_1", "label"], "logits 'logit_0' … 'logit_1', label 'label'"),
        (["prob_0", "prob_1", "label", "confidence", "correct"], "probabilities 'prob_0' … 'prob_1', label 'label'"),
        (["prob_0", "prob_1", "confidence", "correct"], "confidence 'confidence', correct 'correct'"),
        ([TableColumn("probabilities", "list"), "labels"], "probabilities 'probabilities', label 'labels'"),
        ([TableColumn("logits", "list"), "labels"], "logits 'logits', label 'labels'"),
        ([TableColumn("probabilities", "number"), "labels"], "score 'probabilities', outcome 'labels'"),
    ],
)
def test_sensible_names_are_found(columns, description):
    assert resolve_columns(columns).description == description


def test_numbered_columns_are_ordered_by_number_not_by_place():
    family = resolve_columns(["prob_10", *(f"prob_{i}" for i in range(9, -1, -1)), "label"]).family
    assert family is not None
    assert family.columns == tuple(f"prob_{i}" for i in range(11))
    assert family.is_ordered


@given(st.permutations([f"prob_{i}" for i in range(12)] + ["label", "id"]))
def test_the_order_of_columns_in_the_file_does_not_matter(columns):
    layout = resolve_columns(columns)
    assert layout.family is not None
    assert layout.family.columns == tuple(f"prob_{i}" for i in range(12))


@pytest.mark.parametrize(
    ("given", "columns", "classes"),
    [
        ("a_*", ("a_cat", "a_dog"), ("cat", "dog")),
        ("a_", ("a_cat", "a_dog"), ("cat", "dog")),
        ("a", ("a_cat", "a_dog"), ("cat", "dog")),
        ("a_dog,a_cat", ("a_dog", "a_cat"), ("dog", "cat")),
        (["a_dog", "a_cat"], ("a_dog", "a_cat"), ("dog", "cat")),
    ],
)
def test_probability_columns_can_be_given_as_pattern_prefix_or_list(given, columns, classes):
    family = resolve_columns(["a_cat", "a_dog", "label"], {"probabilities": given}).family
    assert family is not None
    assert (family.columns, family.classes) == (columns, classes)


@pytest.mark.parametrize(
    ("columns", "overrides", "message"),
    [
        (
            ["confidense", "hit"],
            {},
            r"no column of confidences.*as confidence.*did you mean 'confidense'\? The columns are",
        ),
        (["a", "b"], {}, r"no column of confidences was found; name it as confidence.*the columns are 'a', 'b'"),
        (["0.93", "1"], {}, r"look like data: does the file have a header line\?"),
        (["confidence"], {}, r"no column says which predictions are correct; name it as correct"),
        (["prob_0", "prob_1"], {}, r"no column of true classes; name it as label"),
        (["prob_0", "prob_1", "lable"], {}, r"label; did you mean 'lable'\?"),
        (["prob", "p", "y"], {}, r"'prob' and 'p' may each be the score; name one as score"),
        (["score", "y", "label"], {}, r"'y' and 'label' may each be the label; name one as label"),
        (
            ["score", "pred", "label"],
            {},
            r"'score' may be .*name pred as prediction and label as label, or label as outcome",
        ),
        (["conf", "pred", "outcome"], {}, r"'conf' may be .* or it is the probability that 'outcome' is 1"),
        (["conf", "score", "pred", "y"], {}, r"'conf' may be .*'pred', or 'score' the probability that 'y' is 1"),
        (["score"], {}, r"scores are in 'score', but no column of outcomes was found; name it as outcome"),
        (["a", "b"], {"score": "a", "correct": "b"}, r"score and correct do not go together; give score and outcome"),
        (["a", "b"], {"confidence": "a", "outcome": "b"}, r"outcome and confidence do not go together"),
        (["a", "b"], {"score": "a", "confidence": "b"}, r"confidence and score were both given"),
        (["p_0", "p_1", "y"], {"probabilities": "p_", "outcome": "y"}, r"outcome does not go with probabilities"),
        (["score", "y", "z"], {"outcome": "y", "label": "z"}, r"label does not go with outcome"),
        (["score", "y"], {"outcome": "won"}, r"outcome: there is no column 'won'"),
        (
            ["prob_0", "prob_1", "logit_0", "logit_1", "y"],
            {},
            r"both probabilities .* and logits .*probabilities or logits",
        ),
        (["prob_0", "prob_2", "y"], {}, r"have no class 1; number them consecutively"),
        (["prob_2", "prob_3", "y"], {}, r"have no class 1"),
        (["prob_1", "prob_01", "y"], {}, r"are both class 1"),
        (["prob_0", "prob_1", "p0", "p1", "y"], {}, r"'prob_0' … and 'p0' … may each be the probabilities"),
        (
            ["score", "y"],
            {"confidence": "scores"},
            r"confidence: there is no column 'scores'; did you mean 'score'\?",
        ),
        (["score", "y"], {"weight": "w"}, r"weight: there is no column 'w'"),
        (["a", "b"], {"confidence": "a", "probabilities": "b"}, r"probabilities and confidence were both given"),
        (["a", "b", "y"], {"probabilities": "a,b", "correct": "y"}, r"correct does not go with probabilities"),
        (["a", "y"], {"confidence": "a", "correct": "y", "label": "y"}, r"label does not go with correct"),
        (["a", "y"], {"probabilities": "q_*"}, r"probabilities: there is no column 'q_\*'"),
        (["a", "y"], {"probabilities": ","}, r"probabilities: there is no column ','"),
        (["a", "y"], {"probabilities": "a,zz"}, r"probabilities: there is no column 'zz'"),
        (
            [TableColumn("a", "number"), TableColumn("y")],
            {"probabilities": "a"},
            r"one number per sample.*as score",
        ),
        (["a", "y"], {"colour": "a"}, r"there is no role 'colour'; the roles are score"),
        ([f"column {i}" for i in range(50)], {}, r"and 30 more"),
    ],
)
def test_what_is_missing_or_ambiguous_is_asked_for_by_option(columns, overrides, message):
    with pytest.raises(InputError, match=message):
        resolve_columns(columns, overrides)


def test_options_decide_what_names_leave_open():
    columns = ["score", "pred", "label", "weight"]
    assert resolve_columns(columns, {"prediction": "pred"}).description.endswith("correct where 'pred' equals 'label'")
    assert resolve_columns(columns, {"correct": "label"}).description == "confidence 'score', correct 'label'"
    assert resolve_columns(columns, {"correct": "label", "weight": "weight"}).get("weight") == "weight"
    assert resolve_columns(["prob", "p", "y"], {"confidence": "p"}).get("score") == "p"
    assert resolve_columns(columns, {"outcome": "label"}).description == "score 'score', outcome 'label'"
    assert resolve_columns(columns, {"confidence": "score"}).description.endswith("where 'pred' equals 'label'")
    two = ["prob_0", "prob_1", "label"]
    assert resolve_columns(two, {"score": "prob_1"}).description == "score 'prob_1', outcome 'label'"
    assert resolve_columns(["p", "y"], {"positive": "won"}).description == "score 'p', outcome 'y' ('won' counts as 1)"
    assert resolve_columns(["p", "won"], {"label": "won"}).kind == "score"


def test_layouts_name_their_columns_for_machines():
    layout = resolve_columns(["prob_0", "prob_1", "label", "sample_weight"])
    assert layout.to_dict() == {
        "kind": "probabilities",
        "label": "label",
        "weight": "sample_weight",
        "probabilities": ["prob_0", "prob_1"],
    }
    assert layout.columns == ("prob_0", "prob_1", "sample_weight", "label")
    assert layout.numbers == ("prob_0", "prob_1", "sample_weight")


@given(st.lists(st.text(max_size=12), max_size=8))
def test_any_names_give_a_layout_or_one_clear_error(columns):
    try:
        found = set(resolve_columns(columns).columns)
    except InputError as error:
        found = str(error)
    assert found <= set(columns) if isinstance(found, set) else found


@pytest.mark.parametrize(
    ("columns", "description"),
    [
        (["id", "confidence"], "confidence 'confidence', no labels"),
        (["conf", "pred", "sample_weight"], "confidence 'conf', no labels, weight 'sample_weight'"),
        (["prob_cat", "prob_dog"], "probabilities 'prob_cat' … 'prob_dog', no labels"),
        ([TableColumn("logits", "list")], "logits 'logits', no labels"),
        (["logit_0", "logit_1", "confidence", "correct"], "confidence 'confidence', correct 'correct'"),
        (["prob_0", "prob_1", "confidence", "label"], "probabilities 'prob_0' … 'prob_1', label 'label'"),
        (["score", "y"], "score 'score', outcome 'y'"),
        (["id", "y_score"], "score 'y_score', no labels"),
    ],
)
def test_labels_may_be_optional_and_are_used_where_they_are(columns, description):
    layout = resolve_columns(columns, labels="optional")
    assert layout.description == description
    assert layout.is_labelled == ("no labels" not in description)


@pytest.mark.parametrize(
    ("columns", "overrides", "message"),
    [
        (["prob_0", "prob_1", "confidence"], {}, r"no labels; choose with probabilities or confidence"),
        (["prob_0", "prob_1", "logit_0", "logit_1"], {}, r"no labels; choose with probabilities or logits"),
        (["score", "confidence"], {}, r"no labels; choose with confidence or score"),
        (["conf", "pred"], {"prediction": "pred"}, r"no column says which predictions are correct"),
        (["conf", "pred"], {"label": "truth"}, r"label: there is no column 'truth'"),
        (["conf"], {"correct": "right"}, r"correct: there is no column 'right'"),
        (["logit_0", "logit_1", "y", "label"], {}, r"'y' and 'label' may each be the label"),
        (["id", "pred"], {}, r"no column of confidences was found"),
    ],
)
def test_optional_labels_leave_nothing_else_open(columns, overrides, message):
    with pytest.raises(InputError, match=message):
        resolve_columns(columns, overrides, labels="optional")


def test_options_choose_scores_without_labels():
    found = resolve_columns(["prob_0", "prob_1", "confidence"], {"probabilities": "prob_"}, labels="optional")
    assert (found.kind, found.is_labelled) == ("probabilities", False)


def test_a_long_name_of_several_lines_is_looked_at_once():
    hostile = "prob_" + "a" * 100_000 + "\n\n"  # a pattern that could be cut anywhere took 10^10 steps
    layout = resolve_columns([hostile + "x", hostile + "y", "label"])
    assert layout.family.columns == (hostile + "x", hostile + "y")
    with pytest.raises(InputError, match=r"may each be the probabilities; name one as probabilities by its prefix"):
        resolve_columns(["prob_0", "prob_1", "softmax_" + "1" * 3, "softmax_0", "label"])
    with pytest.raises(InputError, match=r"no column of confidences") as caught:
        resolve_columns(["confidenc" * 10_000, "1" * 100_000 + "x"])
    assert len(str(caught.value)) < 500
