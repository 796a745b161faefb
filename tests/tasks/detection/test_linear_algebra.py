"""The limit on threads of linear algebra: set by the first who needs it, lifted by the last."""

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from tasks.detection.linear_algebra import single_threaded


def threads():
    return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}


def test_the_last_who_leaves_lifts_the_limit():
    assert np.eye(2).any()
    with threadpool_limits(2, user_api="blas"):
        first, second = single_threaded(), single_threaded()
        first.__enter__()
        second.__enter__()
        assert threads() == {1}
        first.__exit__(None, None, None)
        assert threads() == {1}, "the other still computes"
        second.__exit__(None, None, None)
        assert threads() == {2}


def test_a_fault_lifts_it_too():
    with threadpool_limits(2, user_api="blas"):
        with pytest.raises(ZeroDivisionError), single_threaded():
            raise ZeroDivisionError
        assert threads() == {2}
