import pytest

from certcal.lab.training import train
from tests.training.digits import data, network, small


@pytest.fixture(scope="session")
def learned():
    """Gets most digits right, and some hardly ever under noise."""
    return train(network(), data(), small("gaussian", epochs=8, sigma=0.4)).network
