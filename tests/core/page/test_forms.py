from crawler.core.http.urls import Url
from crawler.core.page.forms import LoginForm, find_login_form

HERE = Url("http://a.test/auth/login?next=/")
NAMES = ("user", "password")


def form_of(markup: str) -> LoginForm | None:
    return find_login_form(markup.encode(), "text/html", url=HERE, names=NAMES)


def test_form_is_sent_as_by_a_browser() -> None:
    found = form_of(
        """<form action=/search><input name=q></form>
        <form method=POST action="session"><input type=hidden name=csrf value="t&amp;k"><input name=user
        value=old> <input type=password name=password><input type=checkbox name=remember checked><input type=checkbox
        name=no> <input type=radio name=kind value=a><input type=radio name=kind value=b checked><input type=file
        name=f> <button name=go value=in>Log in</button><button name=go value=up>Sign up</button><input name=off
        disabled>"""
    )

    assert found is not None
    assert (found.action, found.is_post) == ("http://a.test/auth/session", True)
    assert found.fill_fields({"user": "me", "password": "x"}) == (
        *(("csrf", "t&k"), ("remember", "on"), ("kind", "b"), ("go", "in")),
        *(("user", "me"), ("password", "x")),
    )


def test_form_without_action_is_sent_to_its_page_and_base_applies() -> None:
    bare = form_of("<form><input name=user><input name=password></form>")
    based = form_of("<base href=/app/><form action=in><input name=user><input name=password></form>")

    assert bare is not None
    assert (bare.action, bare.is_post) == (HERE, False)
    assert based is not None
    assert based.action == "http://a.test/app/in"


def test_page_without_all_fields_in_one_form_has_no_login_form() -> None:
    assert form_of("<form><input name=user></form><form><input name=password></form>") is None
    assert form_of("<p>user and password are two words") is None
    assert find_login_form(b"\xff\xfe\0user password<form", "text/html", url=HERE, names=NAMES) is None
