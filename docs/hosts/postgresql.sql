-- A user of hosts alone: it reads and writes what hosts, lanes and model servers are about, reads who the
-- members are (not their passwords), neither reads nor writes the audit trail, and makes and drops nothing. Safe to repeat, and to be repeated after
-- each update, for tables that are new:
--   psql "$DATABASE_URL" -v password=HOST_PASSWORD -f docs/hosts/postgresql.sql
\set ON_ERROR_STOP on
SELECT 'CREATE ROLE slotserve_host LOGIN'
    WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'slotserve_host') \gexec
ALTER ROLE slotserve_host PASSWORD :'password';
GRANT USAGE ON SCHEMA public TO slotserve_host;
GRANT SELECT ON django_migrations TO slotserve_host;
REVOKE ALL ON auth_user FROM slotserve_host;
SELECT format('GRANT SELECT (%s) ON auth_user TO slotserve_host', string_agg(quote_ident(column_name), ', '))
    FROM information_schema.columns
    WHERE table_schema = 'public' AND table_name = 'auth_user' AND column_name <> 'password' \gexec
SELECT format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO slotserve_host', tablename)
    FROM pg_tables WHERE schemaname = 'public' AND starts_with(tablename, 'lanes_')
    AND NOT starts_with(tablename, 'lanes_audit') \gexec
SELECT format('GRANT USAGE ON %I TO slotserve_host', sequencename)
    FROM pg_sequences WHERE schemaname = 'public' AND starts_with(sequencename, 'lanes_')
    AND NOT starts_with(sequencename, 'lanes_audit') \gexec
