"""Words that a reader of today would stumble over are found, with what to write instead."""

from tests.words import found


def test_a_word_of_another_age_is_found_where_it_stands():
    text = "It is recreated.\nIt is made anew, for ever.\n"
    assert [(number, word) for number, word, _ in found(text)] == [(2, "made anew"), (2, "anew"), (2, "for ever")]


def test_a_phrase_is_found_as_a_whole():
    found_here = [(word, instead) for _, word, instead in found("What becomes of drift: it is put back by hand.")]
    assert found_here == [
        ("becomes of", "happens to, happened to"),
        ("is put back", "is reverted, corrected, restored"),
    ]


def test_words_that_only_contain_one_are_left_alone():
    assert list(found("unless the renewed one is forever ahead, at least")) == []
