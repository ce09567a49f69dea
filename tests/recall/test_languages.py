"""Words of several languages, end to end: forms of one word find each other, and scripts without spaces are found."""

from __future__ import annotations

import pytest

from memoranda.context import Context
from memoranda.operations.recalling import recall
from memoranda.operations.remembering import NewNote, remember
from memoranda.operations.space import Space

# (what a note says, questions that it answers)
FRENCH = [
    ("Les élèves de l'école étudient à Orléans.", ("élève", "eleves", "ÉCOLES", "l'ecole d'Orleans", "qui étudie ?")),
    ("Les chevaux sont au haras près de la forêt.", ("cheval", "un cheval dans la foret", "chevaux", "forêts")),
    ("L'hôpital a refusé d'embaucher l'infirmière.", ("hopital", "les hôpitaux", "infirmières", "d’infirmiere")),
    ("Aujourd'hui, on n'a plus d'œufs ni de cœurs d'artichaut.", ("oeuf", "œufs", "coeur d'artichauts", "artichaut")),
    ("Jusqu'en juin, qu'elle paie le loyer à la mairie.", ("loyers", "le loyer payé à la mairie", "les mairies")),
    ("Les travaux de la gare ont été arrêtés.", ("travail de la gare", "gares", "arrêter les travaux")),
]
ENGLISH = [
    ("The children's boxes were moved to the cellar.", ("child", "box", "moving boxes", "cellars", "children")),
    ("Two mice ran over the shelves.", ("mouse", "a shelf with mice", "running mouse")),
    ("Dana’s café résumé isn't printed yet.", ("cafe resume", "Dana", "printing resumes", "cafés")),
    (
        "The company’s policies were studied by analyses.",
        ("policy", "companies", "study policies", "analysis"),
    ),
]
DENSE = [
    # Japanese, Chinese (simplified and traditional), Korean, Thai
    ("会議は毎週月曜日の午前十時に大阪の本社で開かれます。", ("会議はいつですか", "大阪の本社", "月曜日の会議")),
    ("新しい契約書は来月までに法務部が確認します。", ("契約書を確認するのは誰ですか", "法務部", "新しい契約")),
    ("コーヒーメーカーの修理は田中さんに頼んでください。", ("コーヒーメーカーが壊れた", "田中さん", "修理を頼む")),
    ("服务器的密码每三个月更换一次，由张伟负责。", ("谁负责更换密码", "服务器密码", "张伟负责什么")),
    ("客户希望在十月之前收到新的报价单。", ("报价单什么时候要", "客户希望什么", "新的报价")),
    ("會議室在三樓，鑰匙在櫃檯。", ("會議室在哪裡", "鑰匙", "三樓的會議室")),
    ("서울 사무실은 다음 달에 부산으로 이전합니다.", ("사무실 이전", "부산", "서울 사무실은 어디로 가나요")),
    ("ประชุมทีมทุกวันจันทร์ที่สำนักงานเชียงใหม่", ("ประชุมวันไหน", "เชียงใหม่", "สำนักงาน")),
]


@pytest.mark.parametrize("said", [FRENCH, ENGLISH, DENSE], ids=["french", "english", "dense"])
def test_the_note_that_answers_comes_first(
    context: Context, space: Space, said: list[tuple[str, tuple[str, ...]]]
) -> None:
    told = [remember(context, space, NewNote(text)).id for text, _ in said]
    for note, (text, questions) in zip(told, said, strict=True):
        for question in questions:
            found = [item.id for item in recall(context, space, question).items]
            assert found[:1] == [note], (question, text)


def test_what_no_text_says_is_not_found_in_any_script(context: Context, space: Space) -> None:
    for text, _ in (*FRENCH, *ENGLISH, *DENSE):
        remember(context, space, NewNote(text))
    for question in ("飛行機の切符", "火山爆发", "비행기 표", "ตั๋วเครื่องบิน", "zeppelin", "dirigeable", "зимний дворец"):
        assert recall(context, space, question).items == (), question


def test_full_and_half_width_and_both_cases_are_one(context: Context, space: Space) -> None:
    told = remember(context, space, NewNote("ＡＢＣ社のｻｰﾊﾞは ２０２６年に更新。"))
    for question in ("abc社", "サーバ", "2026年", "ABC"):
        assert [item.id for item in recall(context, space, question).items] == [told.id], question


def test_other_alphabets_are_found_by_their_words(context: Context, space: Space) -> None:
    russian = remember(context, space, NewNote("Встреча с клиентом перенесена на пятницу."))
    greek = remember(context, space, NewNote("Η συνάντηση είναι στην Αθήνα."))
    arabic = remember(context, space, NewNote("الاجتماع في القاهرة يوم الأحد."))
    for note, question in ((russian, "ВСТРЕЧА"), (greek, "συναντηση στην αθηνα"), (arabic, "القاهرة")):
        assert [item.id for item in recall(context, space, question).items] == [note.id], question
