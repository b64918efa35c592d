-- Saves the state, for the next upgrade.
TRUNCATE kept.before;
INSERT INTO kept.before SELECT * FROM kept.state();
