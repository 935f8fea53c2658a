-- The Postgres image runs this once with psql while its volume is empty. The services are not superusers: an attacker who
-- takes one over can change crawled data, but cannot start programs. CREATEROLE is for `recrawl db grant`.
\set password `cat /run/secrets/database_password`
CREATE ROLE recrawl LOGIN CREATEROLE PASSWORD :'password';
CREATE DATABASE crawl OWNER recrawl;
CREATE DATABASE prefect OWNER recrawl;
-- The superuser can only log in from this container: docker compose exec postgres psql --username postgres
ALTER ROLE postgres PASSWORD NULL;
