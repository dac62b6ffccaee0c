import numpy as np


def confusion_matrix(t, p, n):
    m = np.zeros((n, n), dtype=np.int64)
    np.add.at(m, (t, p), 1)
    return m


def macro_f1(c):
    tp = np.diag(c)
    d = c.sum(0) + c.sum(1)
    return float((2 * tp / np.maximum(d, 1)).mean())


def matthews_correlation(c):
    return None


def auc(p, s):
    return None


def expected_calibration_error(r, c):
    return 0.0


def pearson(a, b):
    return float(np.corrcoef(a, b)[0, 1])


def spearman(a, b):
    return None


def label_set_macro_f1(a, b):
    return 0.0
