"""The tables, without behavior. Importing this package loads the metadata of all of them."""

from sqlmodel import SQLModel

from models import change, domain, page, subscription, user, visit

metadata = SQLModel.metadata
