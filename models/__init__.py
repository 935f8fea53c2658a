"""The tables. No behavior; importing this package gives the whole metadata."""

from sqlmodel import SQLModel

from models import change, domain, figures, page, subscription, url_list, visit

metadata = SQLModel.metadata
