"""YAML that is damaged or a stranger's."""

import pytest

from st_paragram.core.yaml_files import MOST_BYTES, read_yaml


def read(folder, text):
    (folder / "x.yaml").write_text(text, encoding="utf-8")
    return read_yaml(folder / "x.yaml")


def test_values_come_back_also_through_aliases(tmp_path):
    assert read(tmp_path, "a: &a {x: 1}\nb: {<<: *a, y: 2.5}\nc: *a") == {
        "a": {"x": 1},
        "b": {"x": 1, "y": 2.5},
        "c": {"x": 1},
    }
    assert read(tmp_path, "# nothing") is None


def bomb(line):
    return "\n".join(["x0: &x0 {a: 1, b: 2}", *(line.format(n, ", ".join([f"*x{n - 1}"] * 9)) for n in range(1, 30))])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (bomb("x{0}: &x{0} [{1}]"), "more than 100,000 values"),
        (bomb("x{0}: &x{0} {{<<: [{1}]}}"), "more than 100,000 values"),
        (
            "\n".join(["x0: &x0 [1]", *(f"x{n}: &x{n} [*x{n - 1}]" for n in range(1, 90))]),
            "nested more than 64 levels deep",
        ),
        ("a: &a [*a]", "nested more than 64 levels deep"),
        ("a: " + "[" * 70 + "]" * 70, "nested more than 64 levels deep"),
        ("a: " + "[" * 5000 + "]" * 5000, "nested more than 64 levels deep"),
        ("a: 0x" + "f" * 4000, "a number of 4,002 digits"),
        ("a: " + "9" * 5000, "a number of 5,000 digits"),
        ("#" * (MOST_BYTES + 1), "bytes, more than"),
        ("!!bool maybe", "maybe"),
        ("!!timestamp now", "."),
        ("!!int ''", "."),
        ("2001-99-99", "month"),
        ("!!python/object/apply:os.system [ls]", "could not determine a constructor"),
        ("a: 1\n---\nb: 2", "expected a single document"),
        ("*a", "undefined alias"),
        ("{[a]: 1, ? {b: 2} : 3}", "unhashable"),
    ],
)
def test_what_is_refused_is_refused_in_a_line(tmp_path, text, message):
    with pytest.raises(ValueError, match=message) as caught:
        read(tmp_path, text)
    assert "\n" not in str(caught.value) and len(str(caught.value)) <= 200
