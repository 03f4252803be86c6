"""The questions that acceptance tests and conventions ask, and the page of one."""

import pathlib

ANSWERS = (
    ("predict", "emotion_bert_base", "--device", "a100_sxm4_80gb"),
    ("predict", "emotion_bert_base", "--instance", "aws/g5.xlarge"),
    ("recommend", "emotion_bert_base"),
    ("list", "devices"),
)
JOB = ("predict", "emotion_bert_base", "--instance", "aws/g5.xlarge")
WINNER = ("recommend", "emotion_bert_base")


def page_of(case, *command):
    file = case.path("report.html")
    case.good(*command, "--quiet", "--export", file)
    return pathlib.Path(file).read_text(encoding="utf-8")
