"""What pip has been told about where packages are found reaches uv, or uv is not used."""

import pytest

from scripts.install import as_uv_has_it


def test_places_and_certificates_are_handed_on() -> None:
    listed = """\
:env:.cert='/etc/ours.pem'
:env:.timeout='60'
global.cert='/etc/theirs.pem'
global.extra-index-url='https://one.test/simple\\nhttps://two.test/simple'
global.find-links='/old'
global.index-url='https://mirror.test/simple'
install.find-links='/wheels /more'
"""
    assert as_uv_has_it(listed) == {
        "SSL_CERT_FILE": "/etc/ours.pem",
        "UV_DEFAULT_INDEX": "https://mirror.test/simple",
        "UV_FIND_LINKS": "/wheels,/more",
        "UV_INDEX": "https://one.test/simple https://two.test/simple",
    }


@pytest.mark.parametrize("key", ["proxy", "trusted-host", "no-index", "require-hashes", "pre", "target", "only-binary"])
@pytest.mark.parametrize("section", [":env:", "global", "install"])
def test_what_uv_would_not_follow_is_left_to_pip(section: str, key: str) -> None:
    assert as_uv_has_it(f"global.find-links='/wheels'\n{section}.{key}='1'\n") is None


def test_settings_of_other_commands_and_of_how_pip_talks_do_not_matter() -> None:
    assert as_uv_has_it("download.proxy='p'\nglobal.progress-bar='off'\n:env:.quiet='0'\n") == {}
    assert as_uv_has_it("") == {}
