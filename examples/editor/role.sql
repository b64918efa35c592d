-- The role as which the server connects.
CREATE ROLE app LOGIN;
