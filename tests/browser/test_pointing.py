"""A cell of a large matrix is read out where the pointer is, in the words of its table."""

from tests.browser import looking


def test_pointing_at_a_cell_of_a_large_matrix_reads_it_from_its_table(visit):
    tab = visit("study")
    looking.open_all(tab)  # the matrix of all measurements is in the appendix
    said = tab.locator("[data-said]")
    assert said.inner_text() == "Point at a cell to read it."
    area = tab.locator("[data-cells]")
    area.scroll_into_view_if_needed()
    box = area.bounding_box()
    rows = tab.locator("table.pairs tbody tr").evaluate_all(
        "all => all.map(row => Array.from(row.cells).map(cell => cell.textContent))"
    )
    for down, across in ((3, 1), (1, 3), (5, 5), (len(rows) - 1, 0)):
        x, y = (box[side] + box[size] * (place + 0.5) / len(rows) for side, size, place in (
            ("x", "width", across), ("y", "height", down),
        ))  # fmt: skip
        tab.mouse.move(x, y)
        value = rows[max(down, across)][1 + min(down, across)] or "undefined"
        assert said.inner_text() == f"{rows[down][0]} and {rows[across][0]}: {value}"
